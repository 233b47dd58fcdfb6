"""Fault drills: kills, full disks, read-only folders, jumping clocks, rivals and damaged files."""
