"""What keeps tables young, while their run has nothing else to do."""
