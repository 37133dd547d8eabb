import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { cgroupMemoryLimit } from './cgroup.ts'

const UNLIMITED_V1 = '9223372036854771712\n'

async function limitIn(files: Readonly<Record<string, string>>): Promise<number | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-cgroup-'))
  try {
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true })
      await writeFile(join(folder, path), text)
    }
    return cgroupMemoryLimit({ proc: join(folder, 'proc'), cgroups: join(folder, 'sys') })
  } finally {
    await rm(folder, { recursive: true })
  }
}

test('cgroup version 2: returns the smallest limit of the group and its ancestors', async () => {
  const table = { 'proc/cgroup': '0::/kubepods/pod1/c1\n' }
  const inner = { 'sys/kubepods/pod1/c1/memory.max': 'max\n' }
  assert.equal(await limitIn({ ...table, ...inner }), undefined)
  const outer = { 'sys/kubepods/pod1/memory.max': '536870912\n' }
  assert.equal(await limitIn({ ...table, ...inner, ...outer }), 536870912)
  const both = { ...outer, 'sys/kubepods/pod1/c1/memory.max': '268435456\n' }
  assert.equal(await limitIn({ ...table, ...both }), 268435456)
})

test('cgroup version 2 in a container: treats the visible root as the group', async () => {
  const files = { 'proc/cgroup': '0::/\n', 'sys/memory.max': '1073741824\n' }
  assert.equal(await limitIn(files), 1073741824)
  // The path may be that of the host, of which the container sees nothing.
  const host = { ...files, 'proc/cgroup': '0::/../../machine.slice/c1\n' }
  assert.equal(await limitIn(host), 1073741824)
})

test('cgroup version 1: reads the memory hierarchy, even beside version 2', async () => {
  const table = { 'proc/cgroup': '5:devices:/\n4:cpu,memory:/docker/c1\n0::/\n' }
  const root = { 'sys/memory/memory.limit_in_bytes': UNLIMITED_V1 }
  assert.equal(await limitIn({ ...table, ...root }), undefined)
  const own = { 'sys/memory/docker/c1/memory.limit_in_bytes': '536870912\n' }
  assert.equal(await limitIn({ ...table, ...root, ...own }), 536870912)
})

test('returns no limit without control groups or with invalid files', async () => {
  assert.equal(await limitIn({}), undefined)
  assert.equal(await limitIn({ 'proc/cgroup': 'nonsense\n\n' }), undefined)
  const odd = { 'proc/cgroup': '0::/\n', 'sys/memory.max': 'many\n' }
  assert.equal(await limitIn(odd), undefined)
})
