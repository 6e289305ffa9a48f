"""What is released: forests, boosted trees and linear models; their predictions and their files."""
