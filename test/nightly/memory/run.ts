/**
 * 100,000 events, 200 watchers and 300 creates a second, for 30 minutes:
 *
 *     npm test -- memory [--minutes 30] [--events N] [--watchers N] [--rate N]
 *                            [--container] [--memory-limit 512Mi] [--most 350] [--node-options ...]
 *
 * `--container` runs the server in a container of podman with 512 MiB, or what `--memory-limit` says;
 * where none can be made, it says so, gives the server that limit as a flag, and checks the peak.
 * Prints the memory once a minute, or twelve times in a shorter run; exits with 1 when it was more
 * than `--most` MiB, when it grew, or when a watcher missed something.
 */
import { parseArgs } from 'node:util'
import { parseQuantity } from '../../../src/lib/go/quantity.ts'
import { Container } from './container.ts'
import { complaints, steadyLoad } from './steady.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    events: { type: 'string', default: '100000' },
    watchers: { type: 'string', default: '200' },
    rate: { type: 'string', default: '300' },
    container: { type: 'boolean', default: false },
    'memory-limit': { type: 'string' },
    most: { type: 'string', default: '350' },
    'node-options': { type: 'string' },
  },
})
const limit = values['memory-limit'] ?? (values.container ? '512Mi' : undefined)
const limitBytes = parseQuantity(limit ?? '0') ?? 0
using container = values.container ? Container.open(limitBytes) : undefined
const flags = limit === undefined || container !== undefined ? [] : [`--memory-limit=${limit}`]
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const report = await steadyLoad({
  events: Number(values.events),
  watchers: Number(values.watchers),
  perSecond: Number(values.rate),
  seconds: Number(values.minutes) * 60,
  sampleSeconds: Math.min(60, (Number(values.minutes) * 60) / 12),
  nodeOptions: values['node-options'],
  flags,
  container,
  say,
})
const wrong = complaints(report, { mostMib: Number(values.most), limitMib: limitBytes / 1024 ** 2 })
say(JSON.stringify({ ...report, wrong }, undefined, 2))
if (wrong.length > 0) process.exitCode = 1
