/** The shards of a collection, computed with 64-bit integers and independently of the server. */

const SPACE = 2n ** 64n

/** The selector of one of several shards of equal size. */
export function shardSelector(
  index: number,
  shards: number,
  field = 'object.metadata.uid',
): string {
  const [start, end] = [boundOf(index, shards), boundOf(index + 1, shards)].map(
    (bound) => `'0x${bound.toString(16).padStart(16, '0')}'`,
  )
  return `shardRange(${field}, ${start}, ${end})`
}

/** The shard that a value belongs to. */
export function shardOf(value: string, shards: number): number {
  let hash = 0xcbf29ce484222325n
  for (const byte of Buffer.from(value)) {
    hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) % SPACE
  }
  let index = 0
  while (hash >= boundOf(index + 1, shards)) index++
  return index
}

function boundOf(index: number, shards: number): bigint {
  return (SPACE * BigInt(index)) / BigInt(shards)
}
