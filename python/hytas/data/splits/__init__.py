"""Split the labelled pixels of a scene into training, validation and test pixels."""
