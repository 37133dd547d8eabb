import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ARCHITECTURES, type Architecture, pinnedNode } from './node-package.ts'
import { packageJson, root } from './project.ts'
import {
  builtPackagesOf,
  faultsOf,
  packagesOf,
  purposesIn,
  runtimePackages,
} from './runtime-packages.ts'

test('runtime packages: each of this project has an accepted licence and a reason', () => {
  const direct = Object.keys(packageJson().dependencies)
  for (const architecture of ARCHITECTURES) {
    const packages = runtimePackages(architecture)
    assert.deepEqual(
      direct.filter((name) => !packages.some((found) => found.name === name)),
      [],
    )
    assert.ok(packages.length > direct.length)
    assert.deepEqual(
      packages.filter(({ isOptional }) => isOptional).map(({ name }) => name),
      [`@duckdb/node-bindings-linux-${architecture}`],
    )
  }
})

test('runtime packages: of those for one platform, the one of the release', () => {
  const locked = {
    'node_modules/a': { version: '1.0.0', license: 'MIT', os: ['linux', 'darwin'] },
    'node_modules/a-linux-arm64': { version: '1.0.0', cpu: ['arm64'], os: ['linux'] },
    'node_modules/a-linux-x64': { version: '1.0.0', cpu: ['x64'], libc: ['glibc'], optional: true },
    'node_modules/a-linux-x64-musl': { version: '1.0.0', cpu: ['x64'], libc: ['musl'] },
    'node_modules/a-win32-x64': { version: '1.0.0', cpu: ['x64'], os: ['win32'] },
  }
  const namesFor = (architecture: Architecture): readonly string[] =>
    packagesOf(locked, new Map(), architecture).map(({ name }) => name)
  assert.deepEqual(namesFor('x64'), ['a', 'a-linux-x64'])
  assert.deepEqual(namesFor('arm64'), ['a', 'a-linux-arm64'])
})

test('runtime packages: a direct one has the purpose in the docs, another one what needs it', () => {
  const purposes = purposesIn('| package | purpose |\n| `a`, `@b/c` | to do it | x |')
  const locked = {
    '': { version: '1.0.0' },
    'node_modules/@b/c': { version: '2.0.0', license: 'MIT', dependencies: { d: '1' } },
    'node_modules/@b/c/node_modules/d': { version: '1.2.0', license: '(MIT OR 0BSD)' },
    'node_modules/e': { version: '3.0.0', license: 'MIT', dev: true },
  }
  const packages = packagesOf(locked, purposes, 'x64')
  assert.deepEqual(
    packages.map(({ name, reason }) => [name, reason]),
    [
      ['@b/c', 'to do it'],
      ['d', 'needed by @b/c'],
    ],
  )
  assert.deepEqual(faultsOf(packages), [])
})

test('runtime packages: one without licence, with another licence, or without reason is a fault', () => {
  const locked = {
    'node_modules/a': { version: '1.0.0' },
    'node_modules/b': { version: '1.0.0', license: '(MIT AND GPL-3.0-only)' },
  }
  assert.deepEqual(faultsOf(packagesOf(locked, new Map([['a', 'to do it']]), 'x64')), [
    'a states no licence',
    'b has the licence GPL-3.0-only, which is not accepted',
    'b has no row in docs/dependencies.md',
  ])
})

test('page packages: those that the build names, whatever npm needs them for', () => {
  const locked = {
    'node_modules/a': { version: '1.0.0', license: 'MIT', dev: true, dependencies: { b: '2' } },
    'node_modules/a/node_modules/b': { version: '2.0.0', license: 'GPL-2.0-only', dev: true },
    'node_modules/b': { version: '1.0.0', license: 'MIT', dev: true },
    'node_modules/c': { version: '1.0.0', license: 'MIT', dev: true },
  }
  const paths = ['node_modules/a', 'node_modules/a/node_modules/b']
  const packages = builtPackagesOf(locked, new Map([['a', 'to draw']]), paths)
  assert.deepEqual(
    packages.map(({ name, version, reason }) => [name, version, reason]),
    [
      ['a', '1.0.0', 'to draw'],
      ['b', '2.0.0', 'needed by a'],
    ],
  )
  assert.deepEqual(faultsOf(packages), ['b has the licence GPL-2.0-only, which is not accepted'])
  assert.throws(() => builtPackagesOf(locked, new Map(), ['node_modules/d']), /node_modules\/d/)
})

test('packages: docs/dependencies.md names every direct one', () => {
  const page = readFileSync(join(root, 'docs/dependencies.md'), 'utf8')
  const { dependencies, devDependencies } = packageJson()
  const missing = Object.keys({ ...dependencies, ...devDependencies }).filter(
    (name) => !page.includes(`\`${name}\``),
  )
  assert.deepEqual(missing, [])
})

test('runtime packages: the pinned Node is the one that tests run with', () => {
  assert.equal(pinnedNode().version, packageJson().devDependencies['node'])
})
