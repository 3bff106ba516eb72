"""What two compiled models differ in: their programs, what these need, and what they answer."""
