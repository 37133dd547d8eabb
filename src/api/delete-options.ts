/** What the body of a delete says. Each member is undefined when it is not there. */
export interface DecodedDeleteOptions {
  readonly gracePeriodSeconds?: number | undefined
  readonly preconditions?: DeletePreconditions | undefined
  readonly orphanDependents?: boolean | undefined
  readonly propagationPolicy?: string | undefined
  readonly dryRun?: readonly string[] | undefined
  /** Means something only where a feature is on that is off by default. */
  readonly ignoreStoreReadErrorWithClusterBreakingPotential?: boolean | undefined
}

/** What the event must be for it to go. */
export interface DeletePreconditions {
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
}
