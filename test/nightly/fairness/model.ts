/**
 * Fairness as a property: users in any mix of roles share slots, CPU time and space for events. A
 * user who asks for less than its fair share is never refused, and its slices never wait for long,
 * whatever the others do.
 *
 * Each world has its own users and is made from one seed. A step is one action of one user. The
 * parts under test are the real ones; time is virtual.
 */
import assert from 'node:assert/strict'
import { mock } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { FairSlots, type Slot } from '../../../src/gate/limits/fair-slots.ts'
import { RunQueue, sliceMs, turnMs } from '../../../src/lib/run-queue.ts'
import {
  GROUP_WEIGHT,
  StoredBytes,
  USER_WEIGHT,
} from '../../../src/registry/admission/stored-bytes.ts'
import type { Random } from '../../support/random.ts'

/** What was refused, and what was granted, to users within their share and to the others. */
export interface Tally {
  steps: number
  modestGranted: number
  greedyGranted: number
  greedyRefused: number
}

/** A modest user asks for less than its share. */
const ROLES = ['modest', 'greedy', 'wide', 'slow', 'bursty'] as const
type Role = (typeof ROLES)[number]

interface User {
  readonly name: string
  readonly role: Role
}

type Users = readonly [User, ...User[]]

/** Plays one world of about so many steps. Throws when a modest user is refused. */
export async function playWorld(random: Random, steps: number): Promise<Tally> {
  const others = Array.from({ length: whole(random, 1, 11) }, (_, n) => ({
    name: `user-${n}`,
    role: random.pick(ROLES),
  }))
  const users: Users = [{ name: 'modest', role: 'modest' }, ...others]
  const tally: Tally = { steps: 0, modestGranted: 0, greedyGranted: 0, greedyRefused: 0 }
  const part = Math.ceil(steps / 3)
  await shareSlots(users, random, { steps: part, tally })
  shareSpace(users, random, { steps: part, tally })
  await shareTime(users, random, { steps: part, tally })
  return tally
}

interface Play {
  readonly steps: number
  readonly tally: Tally
}

/** Every request gives its slots back within this time, which is less than requests wait. */
const WORK_MS_MAX = 400
const WAIT_MS = 1000
const STEP_MS_MAX = 10

async function shareSlots(users: Users, random: Random, play: Play): Promise<void> {
  const limit = random.pick([20, 40, 100, 400])
  let now = 0
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const slots = new FairSlots({
      limit,
      waitingMax: 4000,
      waitMs: () => WAIT_MS,
      clock: { now: () => now },
    })
    const shared = limit - Math.floor(limit / 10)
    const world = new SlotWorld(slots, Math.floor(shared / (users.length + 1)), play.tally)
    for (let step = 0; step < play.steps; step++) {
      play.tally.steps += 1
      const ms = whole(random, 0, STEP_MS_MAX)
      now += ms
      mock.timers.tick(ms)
      world.release(now)
      world.ask(random.pick(users), random, now)
      await undefined
      assert.ok(!world.isUnfair, UNFAIR)
    }
    for (let left = 0; left < 400 && slots.users > 0; left++) {
      now += STEP_MS_MAX
      mock.timers.tick(STEP_MS_MAX)
      world.release(now)
      await nextTurn()
    }
    assert.ok(!world.isUnfair, UNFAIR)
    assert.deepEqual([slots.held, slots.waiting, slots.users], [0, 0, 0])
  } finally {
    mock.timers.reset()
  }
}

class SlotWorld {
  readonly #slots: FairSlots
  readonly #fairShare: number
  readonly #tally: Tally
  readonly #signal = new AbortController().signal
  /** The slots that each user holds or waits for. */
  readonly #asked = new Map<string, number>()
  /** A modest user was refused. */
  isUnfair = false
  #held: { readonly slot: Slot; readonly until: number; readonly give: () => void }[] = []
  #now = 0

  constructor(slots: FairSlots, fairShare: number, tally: Tally) {
    this.#slots = slots
    this.#fairShare = fairShare
    this.#tally = tally
  }

  release(now: number): void {
    this.#now = now
    const over = this.#held.filter(({ until }) => until <= now)
    this.#held = this.#held.filter(({ until }) => until > now)
    for (const { slot, give } of over) {
      give()
      slot[Symbol.dispose]()
    }
  }

  ask({ name, role }: User, random: Random, now: number): void {
    this.#now = now
    const asked = this.#asked.get(name) ?? 0
    const width = role === 'wide' || random.chance(0.1) ? whole(random, 1, 20) : 1
    if (role === 'modest' && asked + width > this.#fairShare) return
    const count = role === 'bursty' && random.chance(0.05) ? 100 : 1
    const workMs = role === 'slow' ? WORK_MS_MAX : whole(random, 1, WORK_MS_MAX)
    for (let n = 0; n < count; n++) this.#request(name, role, width, workMs)
  }

  #request(user: string, role: Role, width: number, workMs: number): void {
    this.#add(user, width)
    const give = (): void => this.#add(user, -width)
    const onSlot = (slot: Slot): void => {
      this.#held.push({ slot, until: this.#now + workMs, give })
      count(this.#tally, role, true)
    }
    const slot = this.#slots.tryEnter({ user, width })
    if (slot !== undefined) {
      onSlot(slot)
      return
    }
    void this.#slots.wait({ user, width }, this.#signal).then((got) => {
      if (typeof got !== 'string') {
        onSlot(got)
        return
      }
      give()
      this.#refused(role)
    })
  }

  /** A failed assertion in a promise that nobody awaits would not reach the caller. */
  #refused(role: Role): void {
    if (role === 'modest') this.isUnfair = true
    else count(this.#tally, role, false)
  }

  #add(user: string, by: number): void {
    this.#asked.set(user, (this.#asked.get(user) ?? 0) + by)
  }
}

const BUDGET = 10_000_000
const LIFETIME_MS = 60_000

function shareSpace(users: Users, random: Random, { steps, tally }: Play): void {
  const world = new SpaceWorld(users.length)
  for (let step = 0; step < steps; step++) {
    tally.steps += 1
    world.pass(whole(random, 0, 2000))
    const { name, role } = random.pick(users)
    const isModest = role === 'modest'
    const bytes = isModest ? whole(random, 1, 100) : whole(random, 1, BUDGET / 4)
    if (!isModest || world.isModest(name, bytes)) count(tally, role, world.store(name, bytes))
  }
}

interface Stored {
  readonly user: string
  readonly bytes: number
  readonly until: number
}

/** Each user has a namespace of its own. */
class SpaceWorld {
  readonly #modestShare: number
  readonly #held = new Map<string, number>()
  #now = 0
  #used = 0
  #live: Stored[] = []
  /** Events count for the user a little longer than they live. */
  #charged: Stored[] = []
  readonly #stored = new StoredBytes({
    resources: [
      {
        name: 'memory',
        budgetBytes: () => BUDGET,
        usedBytes: () => this.#used,
        countsWrites: true,
      },
    ],
    sizes: {
      of: (cluster, namespace = '') => {
        return { cluster, namespace, events: 0, bytes: this.#held.get(namespace) ?? 0 }
      },
    },
    now: () => this.#now,
  })

  constructor(users: number) {
    // Users and namespaces are tenants, and none has a larger weight than a namespace.
    this.#modestShare = (USER_WEIGHT * BUDGET) / (GROUP_WEIGHT * 2 * users + 1) ** 2
  }

  pass(ms: number): void {
    this.#now += ms
    for (const { user, bytes, until } of this.#live) {
      if (until <= this.#now) this.#count(user, -bytes)
    }
    this.#live = this.#live.filter(({ until }) => until > this.#now)
    this.#charged = this.#charged.filter(({ until }) => until > this.#now)
  }

  /** Returns whether the user stays within its guaranteed share. */
  isModest(user: string, bytes: number): boolean {
    const own = this.#charged.filter((one) => one.user === user)
    return own.reduce((sum, one) => sum + one.bytes, bytes) <= this.#modestShare
  }

  /** Returns false when it is refused. */
  store(user: string, bytes: number): boolean {
    const storing = { cluster: 'c', account: user, namespace: user }
    if (this.#stored.exceeded(storing, bytes) !== undefined) return false
    this.#stored.store(storing, bytes, LIFETIME_MS)
    this.#count(user, bytes)
    this.#live.push({ user, bytes, until: this.#now + LIFETIME_MS })
    this.#charged.push({ user, bytes, until: this.#now + LIFETIME_MS * 1.5 })
    return true
  }

  #count(user: string, bytes: number): void {
    this.#used += bytes
    this.#held.set(user, (this.#held.get(user) ?? 0) + bytes)
  }
}

/** Work looks at the clock after each of these. */
const STEP_MS = 1
const RUNNING_MAX = 50
const UNAWAITED_MAX = 1000

async function shareTime(users: Users, random: Random, { steps, tally }: Play): Promise<void> {
  const world = new TimeWorld(users.length, tally)
  let all: Promise<void>[] = []
  for (let step = 0; step < steps; step++) {
    tally.steps += 1
    const user = random.pick(users)
    if (world.mayAsk(user) && (user.role !== 'modest' || random.chance(0.2))) {
      all.push(world.work(user, whole(random, 1, WORK_MS[user.role])))
    }
    if (random.chance(0.3)) await nextTurn()
    if (all.length > UNAWAITED_MAX) {
      await Promise.all(all)
      all = []
    }
  }
  await Promise.all(all)
  await nextTurn()
  world.checkOver()
}

/** The longest work of each role. A modest user has one short request at a time. */
const WORK_MS: Readonly<Record<Role, number>> = {
  modest: sliceMs,
  greedy: 12,
  wide: 60,
  slow: 12,
  bursty: 12,
}

class TimeWorld {
  readonly #clock = { nowMs: 0, now: () => this.#clock.nowMs }
  readonly #queue = new RunQueue({ clock: this.#clock })
  readonly #running = new Map<string, number>()
  readonly #tally: Tally
  readonly #waitMsMax: number

  constructor(users: number, tally: Tally) {
    this.#tally = tally
    // Every lane before it runs one slice, and the turn in which it arrives may be used up.
    this.#waitMsMax = (users + 1) * (sliceMs + STEP_MS) + 2 * (turnMs + sliceMs)
  }

  mayAsk({ name, role }: User): boolean {
    return (this.#running.get(name) ?? 0) < (role === 'modest' ? 1 : RUNNING_MAX)
  }

  async work({ name, role }: User, totalMs: number): Promise<void> {
    this.#add(name, 1)
    const lane = this.#queue.userLane(name)
    const askedAt = this.#clock.nowMs
    const entering = lane.enter()
    if (entering !== undefined) await entering
    const waitedMs = this.#clock.nowMs - askedAt
    count(this.#tally, role, role !== 'modest' || waitedMs <= this.#waitMsMax)
    {
      using slices = lane.slices()
      for (let doneMs = 0; doneMs < totalMs; doneMs += STEP_MS) {
        this.#clock.nowMs += STEP_MS
        if (slices.isOver()) await slices.next()
      }
    }
    this.#add(name, -1)
  }

  checkOver(): void {
    assert.deepEqual([this.#queue.waiting, this.#queue.users], [0, 0])
  }

  #add(user: string, by: number): void {
    this.#running.set(user, (this.#running.get(user) ?? 0) + by)
  }
}

/** A whole number from `least` to `most`. */
function whole(random: Random, least: number, most: number): number {
  return least + random.below(Math.floor(most) - least + 1)
}

const UNFAIR = 'a user within its fair share was refused, or waited too long'

function count(tally: Tally, role: Role, isGranted: boolean): void {
  if (role === 'modest') {
    assert.ok(isGranted, UNFAIR)
    tally.modestGranted += 1
  } else if (isGranted) tally.greedyGranted += 1
  else tally.greedyRefused += 1
}
