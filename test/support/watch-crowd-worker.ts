import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { CrowdRecord, Delays } from './crowd-record.ts'
import { EventClient, type EventWatch } from './event-client.ts'
import type { CrowdOptions, CrowdReport } from './watch-crowd.ts'
import { microseconds } from './watch-crowd.ts'
import { type Change, changeOf } from './watch-sequence.ts'
import type { WatchFrame } from './wire-event.ts'

const options: CrowdOptions = workerData
const sentAt = new Float64Array(options.sentAt)
const answeredAt = new Float64Array(options.answeredAt)
const LATE_MS_MAX = 30_000

const changes: Change[] = []
/** The number in the name of each frame's event. */
const numbers: number[] = []
const record = new CrowdRecord((line) => {
  const frame: WatchFrame = JSON.parse(line)
  changes.push(changeOf(frame))
  numbers.push(Number(frame.object.metadata.name.split('-').at(-1)))
})
const sinceSent = new Delays()
const sinceAnswered = new Delays()

async function openAll(): Promise<EventWatch[]> {
  const watches: EventWatch[] = []
  for (let index = 0; index < options.sessions; index++) {
    const client = await EventClient.open(options)
    const opening = Array.from({ length: options.watchersPerSession }, () =>
      client.watch(options.namespace, { resourceVersion: options.resourceVersion }),
    )
    watches.push(...(await Promise.all(opening)))
  }
  return watches
}

const watches = await openAll()
const watchers = watches.map(({ stream }) => {
  const watcher = record.watcher()
  stream.on('data', (chunk: Buffer) => {
    const now = microseconds()
    watcher.take(chunk, (first, end) => {
      for (let frame = first; frame < end; frame++) {
        const number = numbers[frame] ?? 0
        if (number < options.untimed) continue
        const answered = answeredAt[number] ?? 0
        sinceSent.add(now - (sentAt[number] ?? 0))
        sinceAnswered.add(answered === 0 ? 0 : now - answered)
      }
    })
  })
  return watcher
})

parentPort?.on('message', async (wanted: number) => {
  const deadline = performance.now() + LATE_MS_MAX
  const isDone = (): boolean =>
    watchers.every(({ frames, isAstray }) => frames >= wanted || isAstray)
  while (!isDone() && performance.now() < deadline) await sleep(20)
  const report: CrowdReport = {
    changes,
    astray: watchers.filter(({ isAstray }) => isAstray).length,
    incomplete: watchers.filter(({ frames }) => frames !== wanted).length,
    cut: watches.filter(({ stream }) => stream.closed).length,
    frames: watchers.reduce((sum, { frames }) => sum + frames, 0),
    sinceSentMs: { p50: sinceSent.percentile(0.5), p99: sinceSent.percentile(0.99) },
    sinceAnsweredMs: { p50: sinceAnswered.percentile(0.5), p99: sinceAnswered.percentile(0.99) },
  }
  parentPort?.postMessage(report)
})
parentPort?.postMessage('ready')
