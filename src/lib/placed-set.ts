export interface Placed {
  /** Index in the set; -1 when it is in none. Only the set changes it. */
  place: number
}

/**
 * A set for members that come and go with each request. A Set would allocate a new hash table every
 * few hundred changes, and each old table refers to the next one and to its members: once one of them
 * is in the old generation, all members survive until the next full collection. This set uses one
 * array, in which the last member takes the place of a deleted one. A member can be in one such set at
 * a time.
 */
export class PlacedSet<T extends Placed> implements Iterable<T> {
  readonly #members: T[] = []

  get size(): number {
    return this.#members.length
  }

  has(member: T): boolean {
    // V8 looks an index of -1 up as the name of a property, which is slow.
    return member.place >= 0 && this.#members[member.place] === member
  }

  add(member: T): void {
    if (this.has(member)) return
    member.place = this.#members.length
    this.#members.push(member)
  }

  /** Returns whether it was a member. */
  delete(member: T): boolean {
    if (!this.has(member)) return false
    const { place } = member
    const last = this.#members.pop()
    if (last !== undefined && last !== member) {
      this.#members[place] = last
      last.place = place
    }
    member.place = -1
    return true
  }

  /** The members at the time of the call, in no particular order. */
  [Symbol.iterator](): Iterator<T> {
    return this.#members.slice()[Symbol.iterator]()
  }
}
