/** Plays a scenario on a target and notes its replies in a form that can be compared. */
import type { CallReply, Release } from '../contract.ts'
import { type ClientStream, FakeWorld } from './fake-world.ts'
import { normalForm, watchForms } from './normal-form.ts'
import type { Scenario, Step } from './scenarios.ts'

/** A stream is quiet when nothing came for this time. */
export const quietMs = 400

/** The longest time that a request on a stream is on its way. */
export const sentMs = 30

/** Something that scenarios can be played on. */
export interface Target {
  call(path: string, request: Buffer): Promise<CallReply>
  watch(stream: string, request: Buffer): Promise<void>
  /** The messages of the stream since the last call. */
  messages(stream: string): Promise<readonly Buffer[]>
  wait(ms: number): Promise<void>
  restart(): Promise<void>
  snapshot(): Promise<void>
  restore(bump: number): Promise<void>
}

/** The text of each step, with its results. */
export type Recording = readonly (readonly [step: string, ...results: readonly string[]])[]

export async function play(scenario: Scenario, target: Target): Promise<Recording> {
  const recording: (readonly [string, ...string[]])[] = []
  for (const step of scenario.steps) {
    recording.push([textOf(step), ...(await perform(step, target))])
  }
  return recording
}

function textOf(step: Step): string {
  switch (step.do) {
    case 'call':
      return `${step.path} ${step.request.toString('base64')}`
    case 'watch':
      return `watch ${step.stream} ${step.request.toString('base64')}`
    case 'messages':
      return `messages ${step.stream}`
    case 'wait':
      return `wait ${step.ms}`
    case 'restore':
      return `restore ${step.bump}`
    case 'restart':
    case 'snapshot':
      return step.do
  }
}

async function perform(step: Step, target: Target): Promise<readonly string[]> {
  switch (step.do) {
    case 'call':
      return [normalForm(step.path, await target.call(step.path, step.request), { time: true })]
    case 'watch':
      await target.watch(step.stream, step.request)
      return []
    case 'messages':
      return watchForms(await target.messages(step.stream))
    case 'wait':
      await target.wait(step.ms)
      return []
    case 'restart':
      await target.restart()
      return []
    case 'snapshot':
      await target.snapshot()
      return []
    case 'restore':
      await target.restore(step.bump)
      return []
  }
}

/** The simulated etcd with one member. */
export class SimulatedTarget implements Target {
  readonly #world: FakeWorld
  readonly #streams = new Map<string, ClientStream>()
  #snapshot: ReturnType<FakeWorld['cluster']['snapshot']> | undefined

  constructor(quotaBytes: number, release: Release) {
    this.#world = new FakeWorld({ size: 1, quotaBytes, release })
    this.#world.elect()
  }

  async call(path: string, request: Buffer): Promise<CallReply> {
    return this.#world.call(0, path, request)
  }

  async watch(stream: string, request: Buffer): Promise<void> {
    const open = this.#streams.get(stream)
    if (open === undefined) this.#streams.set(stream, this.#world.watch(0, request))
    else open.input.receive(request)
    this.#world.advance(sentMs)
  }

  async messages(stream: string): Promise<readonly Buffer[]> {
    this.#world.advance(quietMs)
    return this.#streams.get(stream)?.messages.splice(0) ?? []
  }

  async wait(ms: number): Promise<void> {
    this.#world.advance(ms)
  }

  async restart(): Promise<void> {
    this.#streams.clear()
    this.#world.cluster.crash(0)
    this.#world.cluster.restart(0)
    this.#world.elect()
  }

  async snapshot(): Promise<void> {
    this.#snapshot = this.#world.cluster.snapshot()
  }

  async restore(bump: number): Promise<void> {
    if (this.#snapshot === undefined) throw new Error('there is no snapshot')
    this.#streams.clear()
    this.#world.cluster.restore(this.#snapshot, { bump })
    this.#world.elect()
  }
}
