/** Texts that somebody who may write events could choose, to run code, to hide or to deceive. */
import { visible } from '../../ui/src/model/visible.ts'
import type { PageEvent } from './page-server.ts'

export const HOSTILE: Readonly<Record<string, string>> = {
  script: '<script>window.hacked = 1</script>',
  image: '<img src=x onerror="window.hacked = 2">',
  attribute: '" autofocus onfocus="window.hacked = 3" x="',
  link: 'javascript:window.hacked=4',
  braces: '{{constructor.constructor("window.hacked=5")()}} %s &amp;',
  override: 'photo\u202egpj.exe',
  rightToLeft: '\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd 12:34',
  marks: 'a\u200e\u200f\u061c\u2066b\u2069\u2069',
  noWidth: 'ad\u200bmin\u2060\u00ad\ufeff',
  escapes: '\u001b[31mred\u001b[2J\u0007 ok\rbad',
  controls: '\u009b31m\u0085next\u007f',
  long: 'x'.repeat(1024),
  wide: '\ufdfd'.repeat(40),
  marked: `z${'\u0301\u0489'.repeat(120)}`,
  emoji: '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}\u{1f525}\u2764\ufe0f',
  proto: '__proto__',
  constructor_: 'constructor',
  method: 'toString',
  lines: 'one\ntwo\n\n\n\nthree\ttab',
  path: '../../etc/passwd?x=1&y=2#z',
  selector: 'a=b,c!=d\\,e',
}

/** How the page writes a value. */
export function shownAs(name: string): string {
  return visible(HOSTILE[name] ?? '')
}

export const FAR_FUTURE_MS: number = Date.UTC(9000, 0)
export const LONG_NAMESPACE: string = `n${'-0123456789'.repeat(6)}`.slice(0, 62).concat('z')

/** Events with every value in every field that takes any text; and some with strange numbers. */
export function hostileEvents(): readonly PageEvent[] {
  const texts = Object.values(HOSTILE).map((value, index) => everywhere(value, index))
  return [...texts, ...STRANGE]
}

function everywhere(value: string, index: number): PageEvent {
  const reference = { kind: value, name: value, namespace: 'shop', uid: value, apiVersion: value }
  return {
    minutesAgo: 1 + index,
    type: index % 2 === 0 ? 'Warning' : 'Normal',
    reason: value,
    object: 'Pod/replaced',
    note: value,
    controller: value,
    count: 1 + index,
    overMinutes: index,
    members: {
      involvedObject: { ...reference, fieldPath: value },
      related: reference,
      source: { component: value, host: value },
      reportingInstance: value,
      action: value,
    },
  }
}

const MANY_LABELS = Object.fromEntries(
  Array.from({ length: 60 }, (_, index) => [`label-${index}`, 'v'.repeat(63)]),
)

const STRANGE: readonly PageEvent[] = [
  {
    minutesAgo: 2,
    reason: 'Labels',
    object: 'Pod/labels',
    note: 'has 60 labels',
    members: { metadata: { generateName: 'told-', namespace: 'shop', labels: MANY_LABELS } },
  },
  {
    minutesAgo: 3,
    reason: 'Often',
    object: 'Pod/often',
    note: 'was seen very often',
    count: 2 ** 31 - 1,
    overMinutes: 300,
  },
  { minutesAgo: 4, reason: '', object: 'Pod/empty', note: '', controller: '' },
  { minutesAgo: 5, reason: 'Spaces', object: 'Pod/spaces', note: ' '.repeat(300) },
  {
    minutesAgo: 6,
    reason: 'LongNamespace',
    object: `Pod/${'p'.repeat(253)}`,
    note: 'has long names',
    namespace: LONG_NAMESPACE,
  },
  {
    minutesAgo: 7,
    reason: 'Nothing',
    object: 'Pod/nothing',
    note: 'n',
    members: { firstTimestamp: null, lastTimestamp: null, count: 0, message: undefined },
  },
  {
    minutesAgo: 8,
    reason: 'Future',
    object: 'Pod/future',
    note: 'was seen in the year 9000',
    members: { firstTimestamp: '9000-01-01T00:00:00Z', lastTimestamp: '9000-01-01T00:00:00Z' },
  },
  {
    minutesAgo: 9,
    reason: 'Past',
    object: 'Pod/past',
    note: 'was seen before 1970',
    members: { firstTimestamp: '1901-01-01T00:00:00Z', lastTimestamp: '1960-01-01T00:00:00Z' },
  },
  {
    minutesAgo: 10,
    reason: 'Backwards',
    object: 'Pod/backwards',
    note: 'ended before it began',
    overMinutes: -90,
    count: 3,
  },
]
