import type { Random } from '../../../support/random.ts'
import { shardSelector } from '../../../support/shards.ts'
import { continueToken, fieldSelector, labelSelector } from './selectors.ts'
import { hostileName, hostileText } from './values.ts'

type Value = (random: Random) => string

const one = (...values: readonly [string, ...string[]]): Value => {
  return (random) => (random.chance(0.9) ? random.pick(values) : hostileText(random))
}
const flag = one('true', 'false', '1', '0', '', 'yes', 'TRUE', 'null')

const PARAMETERS: readonly [readonly [string, Value], ...(readonly [string, Value])[]] = [
  ['limit', one('1', '2', '0', '-1', '500', '99999999999999999999', '1.5', '0x1', ' 1', '1e3')],
  ['continue', continueToken],
  ['labelSelector', labelSelector],
  ['fieldSelector', fieldSelector],
  [
    'shardSelector',
    one(
      shardSelector(0, 2),
      `(${shardSelector(0, 3)} || (${shardSelector(2, 3)}))`,
      shardSelector(1, 2, 'object.metadata.namespace'),
      "shardRange(object.metadata.uid, '0x0', '0x8')",
      'shardRange(',
    ),
  ],
  // Large versions only by chance: those wait for a version that never comes.
  ['resourceVersion', one('0', '1', '-1', '', 'x', '01', '9223372036854775808', '1.0')],
  ['resourceVersionMatch', one('Exact', 'NotOlderThan', '', 'exact')],
  ['timeout', one('1s', '0', '-1s', '1h', 's', '1', '1ns', '10000000000h', '.5s', '1m30s')],
  ['timeoutSeconds', one('1', '0', '-1', 'x', '9223372036854775807')],
  ['watch', flag],
  ['allowWatchBookmarks', flag],
  ['sendInitialEvents', flag],
  ['pretty', flag],
  ['dryRun', one('All', '', 'all', 'None')],
  ['fieldValidation', one('Strict', 'Warn', 'Ignore', '', 'strict')],
  ['fieldManager', one('me', '', 'a'.repeat(129), '\u0000', 'é')],
  ['force', flag],
  ['includeObject', one('None', 'Metadata', 'Object', '', 'none')],
  ['propagationPolicy', one('Orphan', 'Background', 'Foreground', '', 'None')],
  ['gracePeriodSeconds', one('0', '-1', '30', 'x', '9223372036854775808')],
  ['orphanDependents', flag],
  ['uid', one('', 'u', '0')],
]

/** Known parameters, several of them, some repeated, and unknown ones. */
export function queryText(random: Random, pairsMax = 6): string {
  const pairs = Array.from({ length: random.below(pairsMax + 1) }, () => {
    if (random.chance(0.1)) return pair(hostileName(random), hostileText(random))
    const [name, value] = random.pick(PARAMETERS)
    return random.chance(0.03)
      ? `${name}=%${hostileText(random).length}%zz`
      : pair(name, value(random))
  })
  return pairs.join('&')
}

export function pair(name: string, value: string): string {
  return `${encodeURIComponent(name.toWellFormed())}=${encodeURIComponent(value.toWellFormed())}`
}
