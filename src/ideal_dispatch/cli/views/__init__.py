"""What commands show: an answer on the terminal, the story of the demo."""
