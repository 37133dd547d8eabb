/** Starts an attack in its own process. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Attack, Mounted } from './attack.ts'
import { keyOf } from './attacks.ts'

/** Resolves when the attack has started. Rejects when it could not open a single connection. */
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
  const [mounted] = (await Promise.race([
    once(child, 'message'),
    ended.then(() => [undefined]),
  ])) as [Mounted | undefined]
  if (mounted === undefined || mounted.opened === 0) {
    await stop()
    throw new Error(`"${keyOf(attack)}" could not open a connection`)
  }
  return { [Symbol.asyncDispose]: stop }
}
