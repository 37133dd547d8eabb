/** Values that servers are known to parse differently. */
import type { Random } from '../../../support/random.ts'
import { Members, Raw, type Tree } from '../../fuzz/tree.ts'

export const NAMES = ['n0', 'n1', 'n2'] as const

/** Texts at the limits, in multi-byte scripts, and ones that YAML or JSON must quote. */
const TEXTS = [
  '',
  'a',
  'Normal',
  'Warning',
  'Info',
  'x'.repeat(128),
  'x'.repeat(129),
  'x'.repeat(1024),
  'x'.repeat(1025),
  'é'.repeat(64),
  'é'.repeat(65),
  '日'.repeat(341),
  '日'.repeat(342),
  '😀'.repeat(32),
  '😀'.repeat(33),
  'a/b',
  'example.com/controller',
  'example.com/a/b',
  'A B',
  'tab\there',
  'two\nlines',
  'two\nlines\n',
  ' lead\nline',
  'end \nline',
  'x\r\ny',
  '\u0000',
  '\u007f',
  '\u0085',
  '\u2028',
  '\ufeffmark',
  '<&>',
  '-',
  '.',
  '..',
  'a.b',
  '1',
  '012',
  '0x1',
  '0o7',
  '1e3',
  '1.0',
  '.5',
  '+1',
  '-1',
  '1_000',
  '12:30',
  '190:20:30',
  'true',
  'yes',
  'No',
  'on',
  'y',
  'null',
  '~',
  '.inf',
  '2001-01-01',
  '2001-01-01T00:00:00Z',
  ' lead',
  'trail ',
  "it's",
  '"quoted"',
  'a: b',
  'a #b',
  '- a',
  '%',
  '\\',
  '@',
  '`',
  '{}',
  '[]',
  '|',
  '>',
  '!',
  '&a',
  '*a',
  '?',
  ':',
  '=',
  '<<',
  'word '.repeat(40),
  'word  '.repeat(30),
] as const

const RAW_TEXTS = ['"\\ud83d\\ude00"', '"\\/"', '"\\u00e9"', '"\\ud800"', '"\\udc00x"'] as const

export function text(random: Random): Tree {
  return random.chance(0.04) ? new Raw(random.pick(RAW_TEXTS)) : random.pick(TEXTS)
}

const TIMES = [
  '2026-11-15T08:30:00.000000Z',
  '2026-11-15T08:30:00.123456Z',
  '2026-11-15T08:30:00Z',
  '2026-11-15T08:30:00.123Z',
  '2026-11-15T08:30:00.123456789Z',
  '2026-11-15T10:30:00.123456+02:00',
  '2026-11-15T10:30:00+02:00',
  '2026-11-15T08:30:00.000000-00:30',
  '0001-01-01T00:00:00Z',
  '0001-01-01T00:00:00.000000Z',
  '1969-12-31T23:59:59.999999Z',
  '9999-12-31T23:59:59.999999Z',
  '2024-02-29T00:00:00.000000Z',
  '2023-02-29T00:00:00.000000Z',
  '2026-11-15 08:30:00.000000Z',
  '2026-11-15T08:30:00.000000',
  '2026-11-15T24:00:00.000000Z',
  '2026-11-15T08:30:60.000000Z',
  '2026-13-01T00:00:00.000000Z',
  '2026-11-15t08:30:00.000000z',
  '2026-11-15t08:30:00z',
  '2026-11-15T3:04:00.000000Z',
  '2026-11-15T08:30:00+24:00',
  '10000-01-01T00:00:00Z',
  '',
  'x',
] as const

export function time(random: Random): Tree {
  if (random.chance(0.06)) return random.pick<Tree>([null, 0, true, [], new Members()])
  return random.pick(TIMES)
}

const NUMBERS = [
  '2147483647',
  '2147483648',
  '-2147483649',
  '1.5',
  '1.0',
  '1e2',
  '-0',
  '1E400',
] as const

export function integer(random: Random): Tree {
  if (random.chance(0.2)) return new Raw(random.pick(NUMBERS))
  return random.pick<Tree>([0, 1, 2, 3, 5, 100, -1, null, '1', true, []])
}

const LABEL_NAMES = [
  'app',
  'app',
  'tier',
  'example.com/role',
  'a/b/c',
  '-a',
  'a-',
  '',
  '/',
  '/a',
  'A.b/c',
  'é',
  'x'.repeat(63),
  'x'.repeat(64),
  `${'a'.repeat(253)}/b`,
  `${'a'.repeat(254)}/b`,
  'a b',
  '__proto__',
  'kubectl.kubernetes.io/last-applied-configuration',
] as const
const LABEL_VALUES = [
  'v',
  'w',
  'v',
  'w',
  '',
  '1',
  '-',
  'é',
  'x'.repeat(63),
  'x'.repeat(64),
  'a_b.c',
] as const

export function labels(random: Random): Tree {
  if (random.chance(0.05)) return random.pick<Tree>([null, [], 'x', new Members(), 1])
  return new Members(
    Array.from({ length: 1 + random.below(2) }, () => [
      random.chance(0.7) ? random.pick(['app', 'tier']) : random.pick(LABEL_NAMES),
      random.chance(0.7)
        ? random.pick(['v', 'w'])
        : random.chance(0.1)
          ? random.pick<Tree>([null, 1, true, [], new Members()])
          : random.pick(LABEL_VALUES),
    ]),
  )
}

export function annotations(random: Random): Tree {
  if (random.chance(0.05)) return random.pick<Tree>([null, [], 'x', new Members()])
  return Members.of({
    [random.chance(0.8) ? random.pick(['a', 'example.com/b', 'c']) : random.pick(LABEL_NAMES)]:
      random.chance(0.9) ? text(random) : random.pick<Tree>([null, 1, new Members()]),
  })
}

export function finalizers(random: Random): Tree {
  if (random.chance(0.05)) return random.pick<Tree>([null, 'x', new Members(), [null], [1]])
  return Array.from({ length: random.below(3) }, () =>
    random.chance(0.85)
      ? random.pick(['example.com/a', 'example.com/b'])
      : random.pick(['orphan', 'foregroundDeletion', 'plain', '', 'a/b/c', 'é/x', 'kubernetes']),
  )
}

export function owners(random: Random): Tree {
  if (random.chance(0.05)) return random.pick<Tree>([null, [], 'x', [null], [new Members()]])
  return Array.from({ length: 1 + random.below(2) }, () => owner(random))
}

export function owner(random: Random): Members {
  const reference = Members.of({
    apiVersion: random.pick(['v1', 'v1', 'apps/v1', 'a/b/c', '', '/v1']),
    kind: random.pick(['Pod', 'Pod', 'Event', 'ReplicaSet', '']),
    name: random.pick(['p', 'q', 'p', '']),
    uid: random.pick(['u1', 'u2', 'u3', 'u1', '']),
  })
  if (random.chance(0.3)) {
    reference.entries.push([
      random.pick(['controller', 'controller', 'blockOwnerDeletion', 'bogus']),
      random.pick<Tree>([true, false, null, 'true']),
    ])
  }
  return reference
}

export function reference(random: Random): Tree {
  if (random.chance(0.06)) return random.pick<Tree>([null, 'x', [], new Members()])
  const members: Record<string, Tree> = {
    kind: random.pick(['Pod', 'Node', 'Event', '']),
    namespace: random.pick(['@{ns}', '@{ns}', '@{ns}', '', 'other', 'default']),
    name: random.pick(['p', 'q', '', 'x'.repeat(300)]),
  }
  if (random.chance(0.4)) members['uid'] = random.pick(['u1', '', 'u2'])
  if (random.chance(0.4)) members['apiVersion'] = random.pick(['v1', 'apps/v1', 'bad//x'])
  if (random.chance(0.2)) members['resourceVersion'] = random.pick(['1', 'abc', ''])
  if (random.chance(0.2)) members['fieldPath'] = random.pick(['spec.x', ''])
  if (random.chance(0.05)) members['bogus'] = 1
  return Members.of(members)
}
