/**
 * Computes the version of a change: the etcd revision of the transaction times 1000, plus the index
 * of the change in the transaction. No other file knows this formula.
 *
 * Changes of one transaction share an etcd revision, but a client that resumes a watch needs every
 * change to have its own version, increasing in the order of the changes. etcd delivers the changes
 * of a revision in the order of the operations. A put stores its index in its value (see
 * stored-form.ts). A delete stores nothing, so its index is that of the previous change in the
 * revision plus one: never more than its position, hence below the index of any later put.
 *
 * The index of a delete depends on all changes of the revision, in every namespace: code that
 * numbers changes must see all of them, and filter afterwards.
 *
 * The last index of a revision is never assigned to a change. It means "includes all of that
 * revision", as the version of a list does.
 */

declare const brand: unique symbol

/** Ordered; composed and decomposed in this file only. */
export type Version = number & { readonly [brand]: true }

const indexesPerRevision = 1000
const lastIndex = indexesPerRevision - 1

/** The highest index of a change. */
export const changeIndexMax: number = lastIndex - 1
/** Versions of later revisions are not safe integers: 14 years at 20,000 revisions a second. */
export const revisionMax: number = Math.floor(Number.MAX_SAFE_INTEGER / indexesPerRevision) - 1

/** The version before every change. Clients write it as 0 and mean "any state". */
export const beginning: Version = 0 as Version

/** The version of the change at this index in the transaction of this revision. */
export function versionOfChange(revision: number, index: number): Version {
  checkRevision(revision)
  if (!Number.isInteger(index) || index < 0 || index > changeIndexMax) {
    throw new RangeError(`not the index of a change: ${index}`)
  }
  return (revision * indexesPerRevision + index) as Version
}

/** The version of a state that includes all of this revision, such as a list. */
export function versionOfState(revision: number): Version {
  checkRevision(revision)
  return (revision * indexesPerRevision + lastIndex) as Version
}

/**
 * The etcd revision of the change or state: used in etcd compares, and to read the state at a
 * version.
 */
export function revisionOf(version: Version): number {
  return Math.floor(version / indexesPerRevision)
}

/** The first revision that can contain changes after this version. */
export function firstRevisionAfter(version: Version): number {
  const revision = revisionOf(version)
  const isWhole = version % indexesPerRevision === lastIndex
  return isWhole ? revision + 1 : Math.max(1, revision)
}

export function isAfter(version: Version, other: Version): boolean {
  return version > other
}

/** The form that clients see. */
export function formatVersion(version: Version): string {
  return String(version)
}

/** A client sent an invalid version. `reason` is `range` for a number beyond 64 bits. */
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
 * Parses the version that a client sent: decimal digits, up to 64 bits. A number above all possible
 * revisions becomes the highest version, so that it is treated as a future version. Any number is a
 * valid position, even if no change has that version.
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
 * Assigns versions to the changes of a stream. Needs every change, in etcd's order, from the
 * beginning of a revision.
 */
export class ChangeNumbering {
  #revision = 0
  #last = -1

  /** Undefined when the index is not above the previous one: another program wrote the value. */
  put(revision: number, index: number): Version | undefined {
    this.#enter(revision)
    if (index <= this.#last || index > changeIndexMax) return undefined
    this.#last = index
    return versionOfChange(revision, index)
  }

  /** Undefined when the revision has too many changes: another program made it. */
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
