"""Workers: the loop that runs every step, the wake-ups that end its rest, the janitor, the supervisor of a process."""
