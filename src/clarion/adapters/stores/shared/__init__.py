"""What the stores of both engines do alike, written once.

One module and one `.sql` file for each capability. `statement` compiles the SQL for both engines, `transaction` says
what a work may ask of the store that runs it, `store` is the table of the ports' methods. Knows no driver.
"""
