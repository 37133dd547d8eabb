/**
 * Parses the checks of `/readyz?verbose`, and says what a failing one means for the reader of the
 * page.
 */

export interface Check {
  readonly name: string
  readonly isOk: boolean
}

/** Matches `[+]datastore ok` and `[-]datastore failed: reason withheld`. */
const LINE = /^\[([+-])\](\S{1,200}) /

export function readChecks(text: string): readonly Check[] {
  return text.split('\n').flatMap((line) => {
    const [, sign, name] = LINE.exec(line) ?? []
    return name === undefined ? [] : [{ name, isOk: sign === '+' }]
  })
}

export interface Trouble {
  readonly check: string
  readonly title: string
  /** What it means for readers of events. */
  readonly meaning: string
}

/** Ordered by importance: an earlier failing check explains the later ones. */
const MEANINGS: readonly (readonly [name: RegExp, title: string, meaning: string])[] = [
  [
    /^(datastore|etcd)$/,
    'etcd does not respond',
    'Events written now are not stored. What is shown is what this replica has in memory.',
  ],
  [
    /^informer-sync$/,
    'This replica is loading its events',
    'Lists and counts fail until it has loaded all of them.',
  ],
  [/^shutdown$/, 'This replica is stopping', 'Other replicas handle new requests.'],
  [
    /^(poststarthook\/|autoregister-completion$)/,
    'This replica is starting',
    'Some requests fail until it has started.',
  ],
  [/^log$/, 'The log of this replica is stuck', 'Events are stored and shown as usual.'],
]

export function troublesIn(checks: readonly Check[]): readonly Trouble[] {
  const failing = checks.filter(({ isOk }) => !isOk).map(({ name }) => name)
  const known = MEANINGS.flatMap(([pattern, title, meaning]) => {
    const check = failing.find((name) => pattern.test(name))
    return check === undefined ? [] : [{ check, title, meaning }]
  })
  const unknown = failing.filter((name) => !MEANINGS.some(([pattern]) => pattern.test(name)))
  return [...known, ...unknown.map((check) => ({ check, title: 'A check fails', meaning: '' }))]
}
