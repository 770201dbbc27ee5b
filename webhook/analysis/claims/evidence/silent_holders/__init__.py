"""Why a holder did not renew, and whether it did not."""
