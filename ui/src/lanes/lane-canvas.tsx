import type { JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { type Painting, paint } from './paint.ts'

/** The marks of consecutive lanes. Drawn once; scrolling only moves the canvas. */
export function LaneCanvas({
  top,
  painting,
}: {
  readonly top: number
  readonly painting: Painting
}): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null)
  const { lanes, size } = painting
  const width = size.width - size.labelWidth
  const height = lanes.length * size.rowHeight
  useLayoutEffect(() => {
    const { current } = canvas
    const context = current?.getContext('2d')
    if (current === null || context === null || context === undefined) return
    const ratio = window.devicePixelRatio
    const [pixelWidth, pixelHeight] = [Math.round(width * ratio), Math.round(height * ratio)]
    // Setting a size, even the same one, clears the canvas.
    if (current.width !== pixelWidth || current.height !== pixelHeight) {
      current.width = pixelWidth
      current.height = pixelHeight
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0)
    paint(context, painting)
  }, [painting])
  return (
    <canvas
      ref={canvas}
      class="lanes-canvas"
      style={{
        top: `${top}px`,
        left: `${size.labelWidth}px`,
        width: `${width}px`,
        height: `${height}px`,
      }}
    />
  )
}
