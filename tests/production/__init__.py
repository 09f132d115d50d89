"""What a team would check before it trusts the stack with money."""
