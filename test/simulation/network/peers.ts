/** The network between the members of etcd. */
import type { Random } from '../../support/random.ts'
import type { PeerNetwork } from '../etcd/contract.ts'
import type { Delay } from './network.ts'

const usualDelay: Delay = { least: 0.1, most: 0.5 }

export class Peers implements PeerNetwork {
  readonly #random: Random
  readonly #blocked: boolean[][]
  #delay: Delay = usualDelay

  constructor(members: number, random: Random) {
    this.#random = random
    this.#blocked = Array.from({ length: members }, () => new Array<boolean>(members).fill(false))
  }

  isReachable(from: number, to: number): boolean {
    return this.#blocked[from]?.[to] === false
  }

  delayMs(): number {
    return this.#random.between(this.#delay.least, this.#delay.most)
  }

  /** Returns a function that undoes it. */
  block(from: number, to: number): () => void {
    const row = this.#blocked[from]
    if (row !== undefined) row[to] = true
    return () => {
      if (row !== undefined) row[to] = false
    }
  }

  /** Cuts a member off from all others. Returns a function that undoes it. */
  isolate(member: number): () => void {
    const others = [...this.#blocked.keys()].filter((other) => other !== member)
    const undos = others.flatMap((other) => [this.block(member, other), this.block(other, member)])
    return () => {
      for (const undo of undos) undo()
    }
  }

  slow(delay: Delay = usualDelay): void {
    this.#delay = delay
  }

  heal(): void {
    for (const row of this.#blocked) row.fill(false)
    this.slow()
  }
}
