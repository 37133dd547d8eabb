/** Starts an attack in a process of its own. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Attack, Mounted } from './attack.ts'
import { keyOf } from './attacks.ts'

/** Resolves when it has been mounted. Rejects when it did not get as far as one connection. */
export async function mount(attack: Attack, port: number, scale: number): Promise<AsyncDisposable> {
  const child = fork(join(import.meta.dirname, 'attacker.ts'), [
    keyOf(attack),
    String(port),
    String(scale),
  ])
  const ended = once(child, 'exit')
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
  }
  const [told] = (await Promise.race([once(child, 'message'), ended.then(() => [undefined])])) as [
    Mounted | undefined,
  ]
  if (told === undefined || told.opened === 0) {
    await stop()
    throw new Error(`"${keyOf(attack)}" did not get through`)
  }
  return { [Symbol.asyncDispose]: stop }
}
