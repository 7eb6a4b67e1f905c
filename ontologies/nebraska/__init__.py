"""The 93 counties of Nebraska: neighbours and directions."""
