/** A kind of the objects that events regard. */
export interface RegardedKind {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly kind: string
}
