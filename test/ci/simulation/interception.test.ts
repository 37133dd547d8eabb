/** Production code that reaches for time, chance or I/O other than the simulated ones fails the run. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import type { Patch } from '../../simulation/kernel/interception.ts'

const file = 'src/storage/etcd/group-commit.ts'
const call = 'const writtenAtMs = this.#now()'
const firstImport = "import type { EtcdClient } from '../../etcd/client.ts'"

const escapes: readonly { what: string; code: string; imports?: string; says: RegExp }[] = [
  {
    what: 'a file',
    imports: "import { readFileSync } from 'node:fs'",
    code: "readFileSync('/etc/hostname')",
    says: /fs\.readFileSync, which does real I\/O/,
  },
  {
    what: 'a socket',
    imports: "import net from 'node:net'",
    code: "net.connect(1, '127.0.0.1')",
    says: /net\.connect, which does real I\/O/,
  },
  {
    what: 'fetch',
    code: "void fetch('http://127.0.0.1:1')",
    says: /fetch, which is not simulated/,
  },
  { what: 'hrtime', code: 'process.hrtime()', says: /process\.hrtime, which is not simulated/ },
  {
    what: 'a timer of the runtime',
    code: 'AbortSignal.timeout(5)',
    says: /AbortSignal\.timeout, which is not simulated/,
  },
  {
    what: 'random numbers of the web',
    code: 'crypto.randomUUID()',
    says: /crypto\.randomUUID of the web, which is not simulated/,
  },
  {
    what: 'a real module',
    code: "process.getBuiltinModule('node:fs')",
    says: /process\.getBuiltinModule, which is not simulated/,
  },
]

for (const { what, code, imports, says } of escapes) {
  test(`reports a write that uses ${what}`, () => {
    const patches: Patch[] = [{ file, find: call, replace: `${call}\n    ${code}` }]
    if (imports !== undefined) {
      patches.push({ file, find: firstImport, replace: `${firstImport}\n${imports}` })
    }
    assert.match(simulate(patches), says)
  })
}

test('reports nothing in the same run without such code', () => {
  assert.equal(simulate([]), 'none')
})

/** Runs a short simulation in a process of its own and returns its violation. */
function simulate(patches: readonly Patch[]): string {
  const folder = new URL('../../simulation/', import.meta.url)
  const script = `
    import { intercept, plant } from '${new URL('kernel/interception.ts', folder)}'
    import { inTask } from '${new URL('kernel/current.ts', folder)}'
    for (const patch of ${JSON.stringify(patches)}) plant(patch)
    intercept()
    const { runScenario, scenarioOf } = await import('${new URL('simulate.ts', folder)}')
    const scenario = scenarioOf({ seed: 1, durationMs: 4_000, faults: [] })
    const { violation } = await inTask(() => runScenario(scenario))
    process.stdout.write(violation?.what ?? 'none')`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
  })
  return stdout === '' ? stderr : stdout
}
