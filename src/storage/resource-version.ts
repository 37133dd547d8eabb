/**
 * The version of a change, and the only place that knows how it is made: the etcd revision of the
 * transaction times 1000, plus the position of the change inside it.
 *
 * Changes of one transaction share an etcd revision, yet a client that resumes a watch needs every
 * change to have a version of its own, rising in the order of the changes. etcd delivers the changes
 * of a revision in the order of the operations. A put carries its position in the transaction with
 * it (see stored-form.ts). A delete carries nothing, so its index is that of the change before it in
 * the revision plus one: never more than its position, hence below the index of any later put.
 *
 * For a delete this takes all changes of the revision, in every namespace: whoever numbers changes
 * must see them all, and choose among them afterwards.
 *
 * The last index of a revision is never given to a change. It says "with all of that revision in
 * it", which is what a list is.
 */

declare const brand: unique symbol

/** Ordered; made and taken apart here only. */
export type Version = number & { readonly [brand]: true }

const indexesPerRevision = 1000
const lastIndex = indexesPerRevision - 1

/** The greatest index a change may have. */
export const changeIndexMax: number = lastIndex - 1
/** Past this the versions would not be exact any more: at 20,000 revisions a second, 14 years. */
export const revisionMax: number = Math.floor(Number.MAX_SAFE_INTEGER / indexesPerRevision) - 1

/** Before every change. Clients write it as 0 and mean "whatever you have". */
export const beginning: Version = 0 as Version

/** Of the change at this position in the transaction that made this revision. */
export function versionOfChange(revision: number, index: number): Version {
  checkRevision(revision)
  if (!Number.isInteger(index) || index < 0 || index > changeIndexMax) {
    throw new RangeError(`not the index of a change: ${index}`)
  }
  return (revision * indexesPerRevision + index) as Version
}

/** Of a state that has all of this revision in it, such as a list. */
export function versionOfState(revision: number): Version {
  checkRevision(revision)
  return (revision * indexesPerRevision + lastIndex) as Version
}

/**
 * The revision that holds the change, or the state: what etcd compares, and what it is asked for
 * when the state at a version is wanted.
 */
export function revisionOf(version: Version): number {
  return Math.floor(version / indexesPerRevision)
}

/** The first revision of which something may come after this version. */
export function firstRevisionAfter(version: Version): number {
  const revision = revisionOf(version)
  const isWhole = version % indexesPerRevision === lastIndex
  return isWhole ? revision + 1 : Math.max(1, revision)
}

export function isAfter(version: Version, other: Version): boolean {
  return version > other
}

/** As clients see it. */
export function formatVersion(version: Version): string {
  return String(version)
}

/** What a client sent is not a version. `reason` is `range` for a number beyond 64 bits. */
export class VersionSyntaxError extends Error {
  override readonly name = 'VersionSyntaxError'
  readonly text: string
  readonly reason: 'syntax' | 'range'

  constructor(text: string, reason: 'syntax' | 'range') {
    super(
      reason === 'syntax'
        ? `not a resource version: ${JSON.stringify(text)}`
        : `a resource version has at most 64 bits: ${text}`,
    )
    this.text = text
    this.reason = reason
  }
}

const uint64Max = 2n ** 64n - 1n
const uint64Digits = 20

/**
 * Reads what a client sent: decimal digits, up to 64 bits. A number that no revision will ever
 * reach becomes the greatest version there is, so that it is treated as what it is: not there yet.
 * Any number is a position, also one that we never gave out.
 */
export function parseVersion(text: string): Version {
  if (!/^[0-9]+$/.test(text)) throw new VersionSyntaxError(text, 'syntax')
  const digits = text.replace(/^0+(?=.)/, '')
  if (digits.length > uint64Digits || BigInt(digits) > uint64Max) {
    throw new VersionSyntaxError(text, 'range')
  }
  return Math.min(Number(digits), versionOfState(revisionMax)) as Version
}

/**
 * Gives the changes of a stream their versions. Takes every change there is, in etcd's order, from
 * the beginning of a revision.
 */
export class ChangeNumbering {
  #revision = 0
  #last = -1

  /** Undefined when the index does not come after that of the change before: it was not ours. */
  put(revision: number, index: number): Version | undefined {
    this.#enter(revision)
    if (index <= this.#last || index > changeIndexMax) return undefined
    this.#last = index
    return versionOfChange(revision, index)
  }

  /** Undefined when the revision has more changes than there are numbers: it was not ours. */
  delete(revision: number): Version | undefined {
    this.#enter(revision)
    if (this.#last >= changeIndexMax) return undefined
    this.#last += 1
    return versionOfChange(revision, this.#last)
  }

  #enter(revision: number): void {
    if (revision < this.#revision) {
      throw new RangeError(`revision ${revision} after revision ${this.#revision}`)
    }
    if (revision > this.#revision) this.#last = -1
    this.#revision = revision
  }
}

function checkRevision(revision: number): void {
  if (!Number.isInteger(revision) || revision < 0 || revision > revisionMax) {
    throw new RangeError(`not a revision: ${revision}`)
  }
}
