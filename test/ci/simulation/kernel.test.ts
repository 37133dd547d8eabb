import assert from 'node:assert/strict'
import { test } from 'node:test'
import { currentProcess, inTask, runAs, runWorld } from '../../simulation/kernel/current.ts'
import { SimulatedProcess } from '../../simulation/kernel/process.ts'
import { Scheduler } from '../../simulation/kernel/scheduler.ts'
import { Random } from '../../support/random.ts'

function makeProcess(scheduler: Scheduler, options: { rate?: number } = {}): SimulatedProcess {
  const { rate = 1 } = options
  return new SimulatedProcess({ name: 'one', pid: 1, scheduler, seed: 1, rate, wallOffsetMs: 0 })
}

function runAll(scheduler: Scheduler, until: number): void {
  for (;;) {
    const work = scheduler.next(until)
    if (work === undefined) return
    work()
  }
}

test('the scheduler runs entries by time, then in the order of their scheduling', () => {
  const scheduler = new Scheduler()
  const random = new Random(7)
  const wanted: { at: number; number: number }[] = []
  const ran: { at: number; number: number }[] = []
  for (let number = 0; number < 20_000; number++) {
    const at = random.below(500)
    const entry = scheduler.at(at, () => ran.push({ at: scheduler.now, number }))
    if (random.chance(0.8)) scheduler.cancel(entry)
    else wanted.push({ at, number })
  }
  runAll(scheduler, 1_000)
  assert.deepEqual(
    ran,
    wanted.toSorted((a, b) => a.at - b.at || a.number - b.number),
  )
  assert.equal(scheduler.now, 1_000)
  assert.equal(scheduler.waiting, 0)
})

test('timers of a process follow its own clock', () => {
  const scheduler = new Scheduler()
  const fast = makeProcess(scheduler, { rate: 2 })
  const fired: number[] = []
  runAs(fast, () => {
    fast.setTimeout(() => fired.push(scheduler.now, fast.monotonicMs()), 1_000)
  })
  runAll(scheduler, 5_000)
  assert.deepEqual(fired, [500, 1_000])
})

test('a busy process that is stopped keeps the order of its messages', () => {
  const scheduler = new Scheduler()
  const process = makeProcess(scheduler)
  const ran: string[] = []
  process.loadMs = 10
  process.after(1, () => ran.push('first'))
  // It must wait until 11, and the process is stopped before.
  process.after(2, () => ran.push('second'))
  scheduler.at(3, () => process.stop())
  process.after(4, () => ran.push('third'))
  scheduler.at(50, () => process.resume())
  runAll(scheduler, 200)
  assert.deepEqual(ran, ['first', 'second', 'third'])
})

test('a stopped process runs its due timers first, then its messages, when it is resumed', () => {
  const scheduler = new Scheduler()
  const process = makeProcess(scheduler)
  const ran: string[] = []
  process.after(10, () => ran.push('message'))
  process.setTimeout(() => ran.push('timer'), 20)
  const interval = process.setInterval(() => ran.push('interval'), 8)
  process.stop()
  runAll(scheduler, 100)
  assert.deepEqual(ran, [])
  process.resume()
  runAll(scheduler, 100)
  assert.deepEqual(ran, ['interval', 'timer', 'message'])
  process.clear(interval)
})

test('timers of a suspended machine stand still, once or twice, and so does its clock', () => {
  const scheduler = new Scheduler()
  const process = makeProcess(scheduler, { rate: 1.25 })
  const fired: number[] = []
  process.setTimeout(() => fired.push(scheduler.now, process.monotonicMs()), 5_000)
  const interval = process.setInterval(() => fired.push(process.monotonicMs()), 2_000)
  runAll(scheduler, 1_000)
  process.suspend()
  runAll(scheduler, 20_000)
  process.resume()
  runAll(scheduler, 21_000)
  process.suspend()
  runAll(scheduler, 22_000)
  process.resume()
  runAll(scheduler, 24_100)
  assert.deepEqual(fired, [2_000, 4_000, 24_000, 5_000])
  process.clear(interval)
})

test('nothing of an ended process runs', () => {
  const scheduler = new Scheduler()
  const process = makeProcess(scheduler)
  let ran = 0
  process.after(1, () => ran++)
  process.setTimeout(() => ran++, 1)
  process.setInterval(() => ran++, 1)
  process.setImmediate(() => ran++)
  process.end()
  runAll(scheduler, 100)
  assert.equal(ran, 0)
})

test('continuations run as the process that waits, before another process runs', async () => {
  const scheduler = new Scheduler()
  const one = makeProcess(scheduler)
  const other = makeProcess(scheduler)
  const seen: (SimulatedProcess | undefined)[] = []
  const waits = async () => {
    await undefined
    await undefined
    seen.push(currentProcess())
  }
  await inTask(() =>
    runWorld(() => {
      runAs(one, () => void waits())
      runAs(other, () => void waits())
    }),
  )
  assert.equal(seen[0], one)
  assert.equal(seen[1], other)
  assert.equal(currentProcess(), undefined)
})

test('the clock of a process under load advances with its work and never goes back', () => {
  const scheduler = new Scheduler()
  const process = makeProcess(scheduler)
  process.loadMs = 0.5
  const read: number[] = []
  for (let message = 0; message < 3; message++) {
    process.after(1, () => {
      for (let step = 0; step < 10; step++) read.push(process.monotonicMs())
    })
  }
  runAll(scheduler, 100)
  assert.equal(read.length, 30)
  assert.deepEqual(
    read,
    read.toSorted((a, b) => a - b),
  )
  assert.ok((read.at(-1) ?? 0) >= 15, `the clock is at ${read.at(-1)}`)
})
