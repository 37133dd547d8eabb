/** Takes the pictures of the README: `npm run screenshot`, into docs/images. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { takePictures } from './overview-picture.ts'

const folder = join(import.meta.dirname, '../../docs/images')
mkdirSync(folder, { recursive: true })
for (const { name, png } of await takePictures()) {
  writeFileSync(join(folder, name), png)
  process.stdout.write(`docs/images/${name}: ${Math.round(png.length / 1024)} KiB\n`)
}
