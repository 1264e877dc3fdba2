"""What capture/campaign.sh runs: captures, their checks, the recorder's overhead."""
