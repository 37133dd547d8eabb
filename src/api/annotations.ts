/** Annotations that this server sets. */

/** The cluster of an event, in lists and watches of all clusters. It is not stored. */
export const clusterAnnotation = 'tidings.dev/cluster'

/** The resourceVersion of a mirrored event at its origin. Only mirrors set it. */
export const originVersionAnnotation = 'tidings.dev/origin-resource-version'

/** How often the origin of a mirrored event had started over from an older state. */
export const originEpochAnnotation = 'tidings.dev/origin-epoch'

/** The size of a mirrored event at its origin in bytes, if it was too large to be stored whole. */
export const truncatedAnnotation = 'tidings.dev/truncated-from-bytes'
