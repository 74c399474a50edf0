"""What Pillow needs for the work that the loader bench times: decoding, and both transforms up to the bytes.

    pillow.py FOLDER RESOLUTION SECONDS       FOLDER/boxes.txt: a file and the box of its training crop per line

Prints images per second of decoding, evaluation and training, and an Adler-32 of all crops of the two transforms."""
import sys
import time
import zlib

from PIL import Image


def read_boxes(folder):
    with open(folder + "/boxes.txt", encoding="utf-8") as lines:
        rows = [line.split() for line in lines]
    return [(row[0], tuple(int(value) for value in row[1:])) for row in rows]


def decode(name):
    with open(name, "rb") as file:
        return Image.open(file).convert("RGB")


def evaluation_crop(name, resolution):
    image = decode(name)
    shorter = min(image.size)
    width, height = (resolution * side // shorter for side in image.size)
    image = image.resize((width, height), Image.BICUBIC)
    left, top = int(round((width - resolution) / 2.0)), int(round((height - resolution) / 2.0))
    return image.crop((left, top, left + resolution, top + resolution))


def training_crop(name, box, resolution):
    left, top, width, height = box
    image = decode(name).crop((left, top, left + width, top + height))
    return image.resize((resolution, resolution), Image.BICUBIC)


def rate(work, items, seconds):
    best = 0.0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for item in items:
            work(item)
        best = max(best, len(items) / (time.perf_counter() - start))
    return best


def checksum(work, items):
    value = 1
    for item in items:
        value = zlib.adler32(work(item).tobytes(), value)
    return value


def main():
    folder, resolution, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    items = read_boxes(folder)
    work = (
        lambda item: decode(item[0]),
        lambda item: evaluation_crop(item[0], resolution),
        lambda item: training_crop(item[0], item[1], resolution),
    )
    rates = " ".join("%.1f" % rate(each, items, seconds) for each in work)
    print(rates, checksum(work[1], items), checksum(work[2], items))


main()
