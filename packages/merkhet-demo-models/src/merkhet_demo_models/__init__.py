"""Model folders in the Hugging Face layout, beside this file."""
