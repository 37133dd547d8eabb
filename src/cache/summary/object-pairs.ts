/**
 * A set of pairs of a group and an object, to count the different objects of each group. A `Set`
 * would need an object or a text for each pair, and would block the event loop whenever a large one
 * grows; here each of many small tables grows alone.
 */
import { randomFillSync } from 'node:crypto'

const shardBits = 6
const shardCount = 1 << shardBits
const firstCapacity = 64

/** Marks a free place. Objects are numbers from 0. */
const free = -1

interface Shard {
  /** Their length is a power of two, and at most half of the places are used. */
  objects: Float64Array
  groups: Uint16Array
  count: number
}

export class ObjectPairs {
  readonly #shards: (Shard | undefined)[] = new Array(shardCount).fill(undefined)
  readonly #seeds = newSeeds()

  /** Whether the pair is new. `group` has 16 bits, `object` is a safe integer from 0. */
  add(group: number, object: number): boolean {
    const hash = hashOf(this.#seeds, group, object)
    const index = hash & (shardCount - 1)
    let shard = this.#shards[index]
    if (shard === undefined) {
      shard = newShard(firstCapacity)
      this.#shards[index] = shard
    }
    if (!put(shard, hash, group, object)) return false
    shard.count++
    if (shard.count * 2 > shard.groups.length) grow(shard, this.#seeds)
    return true
  }
}

function newShard(capacity: number): Shard {
  return {
    objects: new Float64Array(capacity).fill(free),
    groups: new Uint16Array(capacity),
    count: 0,
  }
}

function put({ objects, groups }: Shard, hash: number, group: number, object: number): boolean {
  const mask = groups.length - 1
  for (let at = (hash >>> shardBits) & mask; ; at = (at + 1) & mask) {
    const held = objects[at]
    if (held === free) {
      objects[at] = object
      groups[at] = group
      return true
    }
    if (held === object && groups[at] === group) return false
  }
}

function grow(shard: Shard, seeds: Seeds): void {
  const { objects, groups } = shard
  const larger = newShard(groups.length * 2)
  for (let at = 0; at < groups.length; at++) {
    const object = objects[at] ?? free
    const group = groups[at] ?? 0
    if (object !== free) put(larger, hashOf(seeds, group, object), group, object)
  }
  shard.objects = larger.objects
  shard.groups = larger.groups
}

/**
 * Random for each table: names of objects are chosen by clients, who must not be able to choose
 * objects that all have one place.
 */
type Seeds = readonly [object: number, upper: number, group: number]

function newSeeds(): Seeds {
  // Odd factors lose no bit.
  const [object = 0, upper = 0, group = 0] = randomFillSync(new Uint32Array(3))
  return [object | 1, upper | 1, group | 1]
}

function hashOf(seeds: Seeds, group: number, object: number): number {
  let value =
    Math.imul((object % 2 ** 32) | 0, seeds[0]) +
    Math.imul((object / 2 ** 32) | 0, seeds[1]) +
    Math.imul(group + 1, seeds[2])
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}
