/** The body of a delete. A member is undefined if it was not sent. */
export interface DecodedDeleteOptions {
  readonly gracePeriodSeconds?: number | undefined
  readonly preconditions?: DeletePreconditions | undefined
  readonly orphanDependents?: boolean | undefined
  readonly propagationPolicy?: string | undefined
  readonly dryRun?: readonly string[] | undefined
  /** Whether to delete only a stored value that cannot be decoded. */
  readonly ignoreStoreReadErrorWithClusterBreakingPotential?: boolean | undefined
}

/** Conditions that the event must meet to be deleted. */
export interface DeletePreconditions {
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
}
