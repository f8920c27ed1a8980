"""What is wrong with a set-up, and what to do about it. Nothing here changes or starts anything."""
