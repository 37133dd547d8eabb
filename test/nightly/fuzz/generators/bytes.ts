/** The last step: mutations of a text without regard to its meaning. */
import type { Random } from '../../../support/random.ts'

const SNIPPETS = [
  Buffer.from([0xff]),
  Buffer.from([0xc0, 0x80]),
  Buffer.from([0xed, 0xa0, 0x80]),
  Buffer.from([0xf4, 0x90, 0x80, 0x80]),
  Buffer.from([0xe2, 0x80]),
  Buffer.from([0xef, 0xbb, 0xbf]),
  Buffer.from([0]),
  Buffer.from('\\u0000'),
  Buffer.from('\\ud800'),
  Buffer.from('\\'),
  Buffer.from('"'),
  Buffer.from(',,'),
  Buffer.from('{"__proto__":{"polluted":true}}'),
  Buffer.from('\r\n\t '),
  Buffer.from('/*'),
] as const

/** The text, in one of several cases mutated. */
export function spoiled(random: Random, text: string, chance = 0.2): Buffer {
  let bytes: Buffer = Buffer.from(text)
  if (!random.chance(chance)) return bytes
  for (let count = 1 + random.below(3); count > 0; count--) bytes = spoil(random, bytes)
  return bytes
}

function spoil(random: Random, bytes: Buffer): Buffer {
  const at = random.below(bytes.length + 1)
  const [before, after] = [bytes.subarray(0, at), bytes.subarray(at)]
  switch (random.below(5)) {
    case 0:
      return Buffer.concat([before, random.pick(SNIPPETS), after])
    case 1:
      return Buffer.from(before)
    case 2:
      return Buffer.concat([before, after.subarray(1 + random.below(8))])
    case 3:
      return Buffer.concat([before, Buffer.from([random.below(256)]), after.subarray(1)])
    default:
      return Buffer.concat([before, after.subarray(0, random.below(40)), after])
  }
}
