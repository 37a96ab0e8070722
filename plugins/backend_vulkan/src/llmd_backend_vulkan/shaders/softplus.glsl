// log(1 + e^z). The logarithm of Vulkan is exact to 2^-21 only near 1, so this is the series of 2 atanh(e / (2 + e)).
float softplus(float z) {
    float e = exp(-abs(z)), s = e / (2.0 + e), q = s * s;
    float sum = q * (1.0 / 9.0 + q * (1.0 / 11.0 + q * (1.0 / 13.0 + q * (1.0 / 15.0))));
    sum = 1.0 + q * (1.0 / 3.0 + q * (1.0 / 5.0 + q * (1.0 / 7.0 + sum)));
    return max(z, 0.0) + 2.0 * s * sum;
}
