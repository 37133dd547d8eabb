/**
 * What our YAML encoder saves against the encoder of the `yaml` package, and how often the two differ:
 *   npm run bench -- yaml
 * Ours follows Go's YAML library byte for byte, which the conformance suite checks.
 */
import { stringify } from 'yaml'
import { yamlOf } from '../src/codec/yaml/yaml.ts'
import type { Json } from '../src/lib/json.ts'

const ROUNDS = 3000

/** Strings that need care in YAML, and some that do not. */
const TEXTS = [
  '',
  'true',
  'yes',
  'no',
  'null',
  '~',
  '1',
  '1.0',
  '0x1F',
  '1e3',
  '012',
  '0o7',
  '.inf',
  'y',
  '-',
  '- a',
  'a: b',
  'a #b',
  '#a',
  '@a',
  '`a',
  '%a',
  '!a',
  '&a',
  '*a',
  '"a',
  "'a",
  '{a',
  '[a',
  'a\nb',
  'a\nb\n',
  '\na',
  '  a',
  'a  ',
  'a\tb',
  '\u2028',
  '\u007f',
  'a\r\nb',
  '😀',
  'é',
  '2026-11-15',
  '<<',
  '=',
  '?',
  ':',
  'a:',
  '|',
  '>',
  'Normal',
  '10%',
  'Scaled up to 3',
]

const EVENT: Json = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata: { name: 'web-0.17f3', namespace: 'default', labels: { app: 'web' } },
  note: 'Back-off restarting\nfailed container',
  reason: 'BackOff',
  regarding: { kind: 'Pod', name: 'web-0', namespace: 'default' },
  series: { count: 3, lastObservedTime: '2026-11-15T00:00:00.000000Z' },
  type: 'Warning',
}

const byLibrary = (value: Json): string =>
  stringify(value, { version: '1.1', lineWidth: 0, indentSeq: false, sortMapEntries: true })

const differing = TEXTS.filter((text) => yamlOf({ key: text }) !== byLibrary({ key: text }))
const ours = microseconds(() => yamlOf(EVENT))
const library = microseconds(() => byLibrary(EVENT))
process.stdout.write(
  `an event: ours ${ours.toFixed(0)} µs, the library ${library.toFixed(0)} µs of CPU time\n` +
    `strings that the two encode differently: ${differing.length} of ${TEXTS.length}\n`,
)

/** CPU time of one run, after as many runs to warm up. */
function microseconds(run: () => unknown): number {
  for (let round = 0; round < ROUNDS; round++) run()
  const before = process.cpuUsage()
  for (let round = 0; round < ROUNDS; round++) run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / ROUNDS
}
