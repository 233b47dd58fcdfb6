"""Fault drills: kills, interrupts, full disks, read-only folders, jumping clocks, rivals and damaged files."""
