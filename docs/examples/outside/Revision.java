/** A fencing token without stamps: the resourceVersion at which this process was seen to hold the lease. */
final class Revision {
    private Revision() {}

    /**
     * Returns the token of this process, 18 digits. The arguments are spec.holderIdentity and metadata.resourceVersion of
     * the Lease, read after the elector says that this process leads; no other process may ever use the same identity.
     *
     * <p>Read it once, and send it with every write until the elector says otherwise. Never read it again for a write.
     */
    static String of(String holder, String resourceVersion, String identity) {
        if (identity == null || identity.isEmpty() || !identity.equals(holder)) {
            throw new IllegalStateException("not leading: the lease is held by [" + holder + "]");
        }
        if (!resourceVersion.matches("[0-9]{1,18}")) {
            throw new IllegalStateException("not a version that can be compared: " + resourceVersion);
        }
        return String.format("%018d", Long.parseLong(resourceVersion));
    }
}
