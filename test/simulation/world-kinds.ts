/** Clients of the event API, a mirrored cluster, an archive of events. */
export const worldKinds = ['events', 'mirror', 'history'] as const

export type WorldKind = (typeof worldKinds)[number]
