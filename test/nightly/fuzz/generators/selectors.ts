import type { Random } from '../../../support/random.ts'
import { hostileText, randomText } from './values.ts'

const KEYS = [
  'app',
  'b/c',
  'in',
  'notin',
  'constructor',
  '__proto__',
  'a b',
  '',
  'toString',
  'x/y/z',
] as const
const VALUES = [
  'a',
  'b',
  '1',
  '',
  '2',
  'in',
  '-',
  'é',
  '99999999999999999999',
  'a,b',
  '(',
  ')',
] as const
const OPERATORS = ['=', '==', '!=', '>', '<', ' in ', ' notin ', '!', '=!', '===', ' IN '] as const
const FIELDS = [
  'metadata.name',
  'metadata.namespace',
  'reason',
  'type',
  'reportingController',
  'controller',
  'regarding.kind',
  'regarding.name',
  'regarding.namespace',
  'regarding.uid',
  'involvedObject.name',
  'source',
  'since',
  'until',
  'mentions',
  'text',
  'search',
  'name',
  'related.name',
  'order',
  'limit',
  'groupBy',
  'buckets',
  '__proto__',
  'constructor',
  '',
] as const

export function labelSelector(random: Random): string {
  const terms = Array.from({ length: random.below(5) }, () => labelTerm(random))
  return random.chance(0.1) ? cut(random, terms.join(',')) : terms.join(',')
}

function labelTerm(random: Random): string {
  const key = random.pick(KEYS)
  switch (random.below(6)) {
    case 0:
      return key
    case 1:
      return `!${key}`
    case 2: {
      const values = Array.from({ length: random.below(4) }, () => random.pick(VALUES))
      return `${key} ${random.pick(['in', 'notin'])} (${values.join(',')})`
    }
    case 3:
      return hostileText(random)
    default:
      return `${key}${random.pick(OPERATORS)}${random.pick(VALUES)}`
  }
}

export function fieldSelector(random: Random): string {
  const terms = Array.from({ length: random.below(4) }, () => fieldTerm(random))
  return random.chance(0.1) ? cut(random, terms.join(',')) : terms.join(',')
}

function fieldTerm(random: Random): string {
  if (random.chance(0.1)) return hostileText(random)
  const value = random.pick([
    'base-0',
    'fuzz',
    'Started',
    'Pod',
    '',
    '\\',
    '\\,',
    '\\=',
    '=',
    'a\\b',
    '/',
    '20m',
    '1w2d',
    '-1h',
    '99999999999999w',
    '2026-11-15T00:00:00Z',
    '2026-11-15T00:00:00.123456789+14:00',
    '9999-99-99T99:99:99Z',
    'Pod/web-0',
    'Pod/a/b',
    'newest',
    '500',
    '1e9',
    'reason+controller',
    'Started|Pulled*',
    'fuzz|base-*|*',
    'a\\|b\\*',
    'Pod/web-*|pods/x',
    'a|'.repeat(40),
  ])
  return `${random.pick(FIELDS)}${random.pick(['=', '==', '!=', '', '=!'])}${value}`
}

function cut(random: Random, text: string): string {
  const at = random.below(text.length + 1)
  return text.slice(0, at) + randomText(random, random.below(4)) + text.slice(at + random.below(3))
}

/** Continue tokens: valid, forged and broken ones. */
export function continueToken(random: Random): string {
  if (random.chance(0.1)) return hostileText(random)
  const token = random.chance(0.8) ? JSON.stringify(tokenFields(random)) : hostileText(random)
  const text = Buffer.from(token).toString(random.pick(['base64url', 'base64url', 'base64']))
  return random.chance(0.2) ? cut(random, text) : text
}

function tokenFields(random: Random): unknown {
  const fields: [string, unknown][] = [
    ['v', random.pick(['meta.k8s.io/v1', 'meta.k8s.io/v1', 'meta.k8s.io/v1', 'v2', 1, null])],
    ['rv', random.pick<unknown>([1, -1, 0, 2.5, -2, 1e300, '1', null, 2 ** 63, 2 ** 53, 1000])],
    [
      'start',
      random.pick<unknown>([
        'base-0\0',
        'base-1\0',
        'fuzz/base-0\0',
        'fuzz/base-0',
        '../secrets\0',
        '/\0',
        'a/b/c\0',
        '\0',
        '',
        7,
        '\ud800\0',
        'é\0',
        'x'.repeat(300),
      ]),
    ],
  ]
  if (random.chance(0.1)) fields.push(['__proto__', { v: 'meta.k8s.io/v1' }])
  return Object.fromEntries(fields.filter(() => random.chance(0.97)))
}
