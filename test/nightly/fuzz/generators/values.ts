/** Names and values that have broken servers before. */
import type { Random } from '../../../support/random.ts'
import { Members, Raw, type Tree } from '../tree.ts'

export const HOSTILE_NAMES = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'valueOf',
  '__defineGetter__',
  'then',
  'toJSON',
  'length',
  '',
  ' ',
  '.',
  '..',
  '/',
  '-',
  '0',
  '-1',
  '4294967295',
  '<<',
  '$patch',
  '$retainKeys',
  '$setElementOrder/finalizers',
  '$deleteFromPrimitiveList/finalizers',
  'metadata',
  'Metadata',
  'metadata.name',
  'name',
  'labels',
  'kind',
  'apiVersion',
  'resourceVersion',
  'managedFields',
  'finalizers',
  'a/b',
  'a~b',
  'a~1b',
  'ключ',
  '\u0000',
  '\ud800',
  '\u2028',
  '"',
  '\\',
] as const

const HOSTILE_TEXTS = [
  ...HOSTILE_NAMES,
  'a'.repeat(64),
  'a'.repeat(254),
  'x'.repeat(1025),
  'é'.repeat(129),
  '𝒳'.repeat(70),
  '\ud83d',
  '<script>&</script>',
  'line\nbreak',
  'tab\there',
  '\r\nset-cookie: a=b',
  'null',
  'true',
  '1e3',
  '0x1F',
  '2026-11-15T00:00:00Z',
  '2026-02-30T25:61:61Z',
  '0001-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999999-23:59',
  '2026-11-15T00:00:00.123456789+14:00',
  '%00',
  '%',
  '{}',
  '[',
  '*',
  '&a',
  '*a',
  '!!js/function',
  '\ufeff',
  'Normal',
  'Warning',
  'default',
  'fuzz',
  'example.com/owner',
] as const

/** Text in place of a number. */
const HOSTILE_NUMBERS = [
  '1e999',
  '-1e999',
  '1e-999',
  '-0',
  '0.0',
  '1.5',
  '2147483647',
  '2147483648',
  '-2147483649',
  '9007199254740993',
  '9223372036854775807',
  '9223372036854775808',
  '99999999999999999999999999',
  '01',
  '+1',
  '.5',
  '5.',
  '1e',
  '0x10',
  'NaN',
  'Infinity',
  `1${'0'.repeat(400)}`,
] as const

const SCALARS: readonly [Tree, ...Tree[]] = [
  null,
  true,
  false,
  0,
  -1,
  1,
  2,
  1.5,
  2 ** 31,
  2 ** 53,
  '',
]

export function hostileName(random: Random): string {
  return random.chance(0.9) ? random.pick(HOSTILE_NAMES) : hostileText(random)
}

export function hostileText(random: Random): string {
  if (random.chance(0.8)) return random.pick(HOSTILE_TEXTS)
  return randomText(random, random.below(20))
}

/** Any code units, including lone surrogates. */
export function randomText(random: Random, length: number): string {
  let text = ''
  for (let count = 0; count < length; count++) {
    text += String.fromCharCode(random.below(random.pick([0x80, 0x80, 0x800, 0x10000])))
  }
  return text
}

/** A value of any type, a few levels deep. */
export function hostileValue(random: Random, depth = 3): Tree {
  const die = random.below(depth > 0 ? 12 : 7)
  if (die < 2) return random.pick(SCALARS)
  if (die < 5) return hostileText(random)
  if (die < 6) return new Raw(random.pick(HOSTILE_NUMBERS))
  if (die < 7) return nested(random)
  const size = random.below(4)
  if (die < 9) return Array.from({ length: size }, () => hostileValue(random, depth - 1))
  return new Members(
    Array.from({ length: size }, () => [hostileName(random), hostileValue(random, depth - 1)]),
  )
}

/** Mostly about as deep as is parsed, now and then far beyond. */
function nested(random: Random): Tree {
  const depth = random.chance(0.02) ? 200_000 : random.below(220)
  const [open, close] = random.pick([
    ['[', ']'],
    ['{"a":', '}'],
    ['[{"b":', '}]'],
  ])
  const end = random.chance(0.9) ? close.repeat(depth) : ''
  return new Raw(`${open.repeat(depth)}1${end}`)
}
