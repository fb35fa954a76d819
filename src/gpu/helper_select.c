/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/helper_select.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define UUID_TEXT (sizeof "GPU-00000000-0000-0000-0000-000000000000")

static int by_number(
    struct driver *driver, int count, const char *selector, cuda_device *ret_device, struct ckpt_err *err) {
    char *end;
    errno = 0;
    unsigned long number = strtoul(selector, &end, 10);
    if (errno || *end || number >= (unsigned long)count)
        return err_os(err, ENODEV, "no device %s: there are %d", selector, count);
    return driver_check(driver, driver->cuDeviceGet(ret_device, (int)number), err, "cuDeviceGet %lu", number);
}

/* As nvidia-smi writes it. */
static void uuid_text(const struct cuda_uuid *uuid, char out[UUID_TEXT]) {
    char *at = out + sprintf(out, "GPU");
    for (unsigned i = 0; i < sizeof uuid->bytes; i++)
        at += sprintf(at, i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid->bytes[i]);
}

static int by_uuid(
    struct driver *driver, int count, const char *selector, cuda_device *ret_device, struct ckpt_err *err) {
    for (int i = 0; i < count; i++) {
        cuda_device device;
        struct cuda_uuid uuid;
        char text[UUID_TEXT];
        int rc = driver_check(driver, driver->cuDeviceGet(&device, i), err, "cuDeviceGet %d", i);
        if (!rc)
            rc = driver_check(driver, driver->cuDeviceGetUuid(&uuid, device), err, "cuDeviceGetUuid");
        if (rc)
            return rc;
        uuid_text(&uuid, text);
        if (!strcasecmp(text, selector)) {
            *ret_device = device;
            return 0;
        }
    }
    return err_os(err, ENODEV, "no device %s among %d", selector, count);
}

int device_select(
    struct driver *driver, const char *selector, cuda_device *ret_device, struct ckpt_err *err) {
    int count = 0;
    int rc = driver_check(driver, driver->cuDeviceGetCount(&count), err, "cuDeviceGetCount");
    if (rc)
        return rc;
    if (!*selector)
        return by_number(driver, count, "0", ret_device, err);
    if (!selector[strspn(selector, "0123456789")])
        return by_number(driver, count, selector, ret_device, err);
    if (!strncasecmp(selector, "GPU-", 4))
        return by_uuid(driver, count, selector, ret_device, err);
    cuda_result result = driver->cuDeviceGetByPCIBusId(ret_device, selector);
    if (result)
        return err_os(err, ENODEV,
            "no device %s (%d): neither a number, GPU-UUID, nor a PCI bus id of one of %d", selector, result,
            count);
    return 0;
}
