"""Train the winner: records of held-out pixels, decisions from them, and the final weights."""
