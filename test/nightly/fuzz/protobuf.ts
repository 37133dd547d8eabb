/**
 * node test/nightly/fuzz/protobuf.ts [--count 1000000] [--seed N]
 *
 * Hostile protobuf bodies, decoded in this process: mutations of real messages, cut, repeated and
 * spliced, and garbage. Each must end as an event or as a 4xx, in less than 50 ms of CPU.
 */
import { exit, stdout } from 'node:process'
import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { coreGroup, type EventGroup, eventsGroup } from '../../../src/api/event-groups.ts'
import { StatusError } from '../../../src/api/status.ts'
import { decodeDeleteOptions } from '../../../src/codec/delete-options.ts'
import { decodeEventMessage } from '../../../src/codec/event/event-protobuf.ts'
import { wrapEnvelope } from '../../../src/codec/struct/kube-protobuf.ts'
import { structsOf } from '../../../src/codec/struct/made-structs.fixture.ts'
import { encodeStruct } from '../../../src/codec/struct/protobuf-struct.ts'
import type { JsonObject } from '../../../src/lib/json.ts'

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  },
})
const count = Number(values.count)
const seed = Number(values.seed)
const holdMsMax = 50
const bodyBytesMax = 1024 * 1024

const groups: readonly EventGroup[] = [eventsGroup('events.k8s.io'), coreGroup]
const samples = groups.flatMap((group) =>
  fc
    .sample(structsOf(group.type), { seed, numRuns: 200 })
    .map((event: JsonObject) =>
      wrapEnvelope(
        { apiVersion: group.apiVersion, kind: 'Event' },
        encodeStruct(group.type, event),
      ),
    ),
)

let state = seed >>> 0
/** Below `limit`; the same for the same seed. */
function random(limit: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return Math.floor((state / 2 ** 32) * limit)
}

function pick(): Buffer {
  return samples[random(samples.length)] ?? Buffer.alloc(0)
}

function hostile(): Buffer {
  const bytes = Buffer.from(pick())
  switch (random(6)) {
    case 0:
      return bytes.subarray(0, random(bytes.length + 1))
    case 1:
      return Buffer.concat([bytes.subarray(0, random(bytes.length)), pick().subarray(4)])
    case 2: {
      const from = 4 + random(Math.max(1, bytes.length - 4))
      const piece = bytes.subarray(from, from + 1 + random(16))
      const room = random(200) === 0 ? bodyBytesMax : 2000
      return Buffer.concat([bytes.subarray(0, from), Buffer.alloc(random(room), piece)])
    }
    case 3:
      return Buffer.from(Array.from({ length: random(200) }, () => random(256)))
    default:
      for (let changes = 1 + random(8); changes > 0; changes--) {
        bytes[4 + random(Math.max(1, bytes.length - 4))] = random(256)
      }
      return bytes
  }
}

const outcomes = { read: 0, refused: 0 }
let longestMs = 0
for (let index = 0; index < count; index++) {
  const body = hostile()
  const before = process.threadCpuUsage()
  try {
    if (index % 8 === 0) decodeDeleteOptions(body, 'protobuf')
    else decodeEventMessage(body, groups[index % 2] ?? coreGroup)
    outcomes.read += 1
  } catch (error) {
    if (!(error instanceof StatusError) || error.code >= 500) {
      stdout.write(`seed ${seed}, input ${index}: ${error}\n${body.toString('base64')}\n`)
      exit(1)
    }
    outcomes.refused += 1
  }
  const { user, system } = process.threadCpuUsage(before)
  const heldMs = (user + system) / 1000
  longestMs = Math.max(longestMs, heldMs)
  if (heldMs > holdMsMax) {
    stdout.write(`seed ${seed}, input ${index}: held for ${heldMs} ms, ${body.length} bytes\n`)
    exit(1)
  }
}
stdout.write(
  `seed ${seed}: ${count} inputs, ${outcomes.read} read, ${outcomes.refused} refused, at most ${longestMs.toFixed(1)} ms each\n`,
)
