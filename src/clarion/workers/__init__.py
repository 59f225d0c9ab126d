"""Workers: the one loop that runs every step, the wake-up that wakes it, the janitor, and the supervisor of a process."""
