import java.util.Map;

/** The term of a lease: a number that a store outside Kubernetes can compare. It needs docs/stamp.md on the lease. */
final class Term {
    private Term() {}

    /**
     * Returns the term of this pod, 18 digits. The arguments are metadata.annotations, metadata.resourceVersion and
     * spec.holderIdentity of the Lease, of any client; podUid is metadata.uid of the downward API.
     *
     * <p>Read it once, when the elector says that this pod leads, and send it with every write until it says otherwise.
     * Never read it again for a write: whoever leads then may be another pod.
     */
    static String of(
            Map<String, String> annotations, String resourceVersion, String holder, String suffix, String podUid) {
        String writer = annotations.getOrDefault("lease-webhook/writer-" + suffix, "");
        if (!writer.split(" ", 2)[0].equals(podUid) || holder == null || holder.isEmpty()) {
            throw new IllegalStateException("not leading: the lease was written by [" + writer + "]");
        }
        String term = annotations.getOrDefault("lease-webhook/term-" + suffix, "");
        // A lease that was created and not renewed yet has no term; its first renewal stamps this same number.
        long number = term.isEmpty() ? Long.parseLong(resourceVersion) - 1 : Long.parseLong(term);
        return String.format("%018d", number);
    }
}
