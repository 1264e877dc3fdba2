"""Everything that waits for a GPU, in the order of its worth. Started by first_contact.sh."""
